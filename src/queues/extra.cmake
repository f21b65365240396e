# The kinds and policies that the component installs; deploy/ and `berth queues --definitions` show the same text.
berth_text(queues kinds_text definitions/kinds.yaml)
berth_text(queues policies_text definitions/policies.yaml)
