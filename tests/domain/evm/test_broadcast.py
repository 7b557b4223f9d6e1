import pytest

from foretell.domain.evm.broadcast import BroadcastResult, result_of_refusal

ACCEPTED = BroadcastResult.ACCEPTED
NONCE_USED = BroadcastResult.NONCE_USED
FEE_TOO_LOW = BroadcastResult.FEE_TOO_LOW
LATER = BroadcastResult.LATER
REFUSED = BroadcastResult.REFUSED
UNCERTAIN = BroadcastResult.UNCERTAIN


@pytest.mark.case("D-03")
@pytest.mark.parametrize(
    ("message", "meaning"),
    [
        # geth and its derivatives
        ("already known", ACCEPTED),
        ("ALREADY_EXISTS: already known", ACCEPTED),
        ("nonce too low: next nonce 7, tx nonce 3", NONCE_USED),
        ("replacement transaction underpriced", FEE_TOO_LOW),
        ("transaction underpriced: gas tip cap 1, minimum needed 25000000000", FEE_TOO_LOW),
        ("insufficient funds for gas * price + value: balance 0, tx cost 1", LATER),
        ("txpool is full", LATER),
        ("nonce too high", LATER),
        ("account limit exceeded: pooled 17", LATER),
        ("future transaction tries to replace pending", LATER),
        ("intrinsic gas too low: have 1, want 21000", REFUSED),
        ("exceeds block gas limit", REFUSED),
        ("tx fee (2.10 ether) exceeds the configured cap (1.00 ether)", REFUSED),
        ("max priority fee per gas higher than max fee per gas", REFUSED),
        ("transaction type not supported", REFUSED),
        ("invalid sender", REFUSED),
        ("oversized data: transaction size 200000, limit 131072", REFUSED),
        # bor
        ("INTERNAL_ERROR: nonce too low", NONCE_USED),
        ("INTERNAL_ERROR: existing tx with same hash", ACCEPTED),
        ("INTERNAL_ERROR: could not replace existing tx", FEE_TOO_LOW),
        # nethermind
        ("AlreadyKnown", ACCEPTED),
        ("OldNonce, Current nonce: 4, nonce of rejected tx: 2", NONCE_USED),
        ("OwnNonceAlreadyUsed", NONCE_USED),
        ("FeeTooLow, MaxFeePerGas too low.", FEE_TOO_LOW),
        ("FeeTooLowToCompete", FEE_TOO_LOW),
        ("ReplacementNotAllowed", FEE_TOO_LOW),
        ("InsufficientFunds, Account balance: 0", LATER),
        ("NonceGap, Future nonce. Expected nonce: 4", LATER),
        ("NonceTooFarInFuture", LATER),
        ("GasLimitExceeded, Gas limit: 1", REFUSED),
        # besu
        ("Known transaction", ACCEPTED),
        ("Nonce too low", NONCE_USED),
        ("Gas price below configured minimum gas price", FEE_TOO_LOW),
        ("Upfront cost exceeds account balance", LATER),
        ("Transaction nonce is too distant from current sender nonce", LATER),
        ("Transaction gas limit exceeds block gas limit", REFUSED),
        ("Intrinsic gas exceeds gas limit", REFUSED),
        ("Transaction fee cap exceeded", REFUSED),
        # openethereum
        ("Transaction with the same hash was already imported.", ACCEPTED),
        ("Transaction nonce is too low. Try incrementing the nonce.", NONCE_USED),
        ("Transaction gas price is too low. There is another with the same nonce.", FEE_TOO_LOW),
        # anvil and reth
        ("transaction already imported", ACCEPTED),
        ("max fee per gas less than block base fee", FEE_TOO_LOW),
        ("Insufficient funds for gas * price + value", LATER),
        ("execution reverted: custom error 0xf4d678b8", REFUSED),
        # uncertain messages
        ("unknown transaction type 9", REFUSED),
        ("internal error", UNCERTAIN),
        ("Too Many Requests", UNCERTAIN),
        ("header not found", UNCERTAIN),
        ("", UNCERTAIN),
    ],
)
def test_each_message_of_a_node_means_one_result(message: str, meaning: BroadcastResult) -> None:
    assert result_of_refusal(message) is meaning
