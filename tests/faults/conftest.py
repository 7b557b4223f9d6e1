"""What of the rigs is collected: a cluster of databases only where it was asked for."""

import os

collect_ignore = [] if os.environ.get("FORETELL_TEST_PATRONI") else ["test_patroni.py"]
