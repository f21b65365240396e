# The CustomResourceDefinitions that the component installs.
berth_text(pools definitions_text definitions.yaml)
