"""Resolution by the operator; reserved."""
