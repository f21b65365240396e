"""Messages of protobuf by hand, as far as the drivers beside this need them."""


def varint(number):
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def field(number, value):
    """A field of text, bytes or a true value."""
    if isinstance(value, bool):
        return varint(number << 3) + b"\x01" if value else b""
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(at, value):
    """A field of a number."""
    return varint(at << 3) + varint(value) if value else b""


def fields(data):
    """(number, bytes) of the fields of a message that are texts or messages."""
    at, out = 0, []

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = read()
        if tag & 7 == 2:
            size = read()
            out.append((tag >> 3, data[at:at + size]))
            at += size
        else:
            read()
    return out
