"""The single writer of a shard: commands to the journal, then to tables and streams."""
