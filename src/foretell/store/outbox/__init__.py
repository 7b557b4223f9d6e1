"""Tables of transactions that are sent: settlement and relayer."""
