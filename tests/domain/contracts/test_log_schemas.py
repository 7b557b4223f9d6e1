import pytest

from foretell.domain.contracts.log_schemas import fixed_schema


def test_data_with_blanks_has_another_shape() -> None:
    """Python reads hex with blanks, so the text may have the right length and too few bytes."""
    read = fixed_schema(1, 1, lambda _topics, _words: pytest.fail("decoded"))
    with pytest.raises(ValueError, match="blanks"):
        read(["0x"], "0x" + "  " + "00" * 31)
