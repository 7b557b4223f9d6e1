from foretell.app.products import PRODUCT_BY_ROLE
from foretell.app.roles import PREFIX_BY_ROLE, Role


def test_every_role_has_a_product() -> None:
    assert set(PRODUCT_BY_ROLE) == set(Role)


def test_exactly_the_products_with_an_api_refuse_requests_until_they_are_open() -> None:
    served = {role for role, kind in PRODUCT_BY_ROLE.items() if kind.body_of is not None}
    assert served == set(PREFIX_BY_ROLE)
