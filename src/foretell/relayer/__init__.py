"""The relayer: sends Safe transactions that their owners signed."""
