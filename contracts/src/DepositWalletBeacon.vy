# pragma version 0.4.3
"""
@title DepositWalletBeacon
@license Apache-2.0
@notice Names the code that every deposit wallet runs. It is fixed at deployment, so that no one,
        the operator included, can put other code under the wallets.
"""

implementation: public(immutable(address))


@deploy
def __init__(implementation_: address):
    if implementation_ == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    implementation = implementation_
