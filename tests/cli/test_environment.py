from foretell.cli.environment import unknown_variables


def test_unknown_variables_are_found_and_those_of_the_tests_are_not() -> None:
    names = ["FORETELL_PORT", "FORETELL_PROT", "foretell_host", "FORETELL_TEST_POSTGRES", "HOME"]
    assert unknown_variables(names) == ["FORETELL_PROT"]
