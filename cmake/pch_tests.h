// What every test needs on top; compiled once.
#pragma once
#include "pch.h"

#include <gtest/gtest.h>
