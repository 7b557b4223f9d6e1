"""Small faults in the contracts, each with the fastest tests that should find it."""

from typing import Final, NamedTuple

EXCHANGE: Final = "tests/contracts/exchange/"
NEG_RISK: Final = "tests/contracts/neg_risk/"
ORACLE: Final = "tests/contracts/oracle/"
ECOSYSTEM: Final = "tests/contracts/ecosystem/"

AUDIT: Final = f"{EXCHANGE}test_audit_findings.py"
INVARIANTS: Final = f"{EXCHANGE}test_invariants.py"
FEES: Final = f"{EXCHANGE}test_fees.py"
STOPS: Final = f"{EXCHANGE}test_stops.py"
PACKED: Final = f"{EXCHANGE}test_packed.py"
MATCHING: Final = f"{EXCHANGE}test_matching.py"
SETTLING: Final = f"{EXCHANGE}test_settling.py"
JOINED: Final = "tests/contracts/receivers/test_joined_moves.py"
CROSSING: Final = f"{EXCHANGE}test_crossing.py"
STATUS: Final = f"{EXCHANGE}test_status.py"
SIGNATURES: Final = f"{EXCHANGE}test_signatures.py"
VALIDITY: Final = f"{EXCHANGE}test_validity.py"
CANCELLING: Final = f"{EXCHANGE}test_cancelling.py"
DELIVERIES: Final = "tests/contracts/receivers/test_deliveries.py"
FEE_RECEIVERS: Final = "tests/contracts/receivers/test_fee_receivers.py"
CUSTODY: Final = f"{EXCHANGE}test_custody.py"
RECEIVER: Final = f"{EXCHANGE}test_receiver.py"
ROLES: Final = f"{EXCHANGE}test_roles.py"
ORDERS: Final = f"{EXCHANGE}test_orders.py"
REGISTRY: Final = f"{EXCHANGE}test_token_registry.py"
CONVERSION: Final = f"{NEG_RISK}test_neg_risk_conversion.py"
MARKETS: Final = f"{NEG_RISK}test_neg_risk_markets.py"
OPERATOR: Final = f"{NEG_RISK}test_neg_risk_operator.py"
REENTRANCY: Final = f"{NEG_RISK}test_adapter_reentrancy.py"
WRAPPED: Final = f"{NEG_RISK}test_wrapped_collateral.py"
OPTIMISTIC: Final = f"{ORACLE}test_optimistic_oracle.py"
ADAPTER: Final = f"{ORACLE}test_optimistic_adapter.py"
REQUESTS: Final = f"{ORACLE}test_oracle_reentrancy.py"
WAY_OUT: Final = f"{ORACLE}test_direct_way_out.py"
BULLETIN: Final = f"{ECOSYSTEM}test_bulletin.py"
PREAPPROVAL: Final = f"{ECOSYSTEM}test_preapproval.py"
SWEEPING: Final = f"{ECOSYSTEM}test_sweeping.py"
V1_CANCELLING: Final = f"{ECOSYSTEM}test_v1_cancelling.py"
ABI: Final = f"{ECOSYSTEM}test_abi.py"
BATCHES: Final = "tests/contracts/test_batch_settler.py"
DISPUTES: Final = "tests/contracts/scenarios/test_disputes.py"
SCENARIOS: Final = "tests/contracts/scenarios/test_scenarios.py"
LIVES: Final = "tests/contracts/scenarios/test_lives.py"
OWNERSHIP: Final = "tests/contracts/test_ownership.py"


class Patch(NamedTuple):
    """A text of a source, which occurs in it once, and the faulty text in its place."""

    source: str
    text: str
    fault: str
    tests: str

    @property
    def name(self) -> str:
        """The source and the fault, in one line."""
        return f"{self.source}: {' '.join(self.text.split())} -> {' '.join(self.fault.split())}"


LOCK: Final = "@external\n@nonreentrant\ndef "
OPEN: Final = "@external\ndef "

PATCHES: Final = (
    # The five that an audit found alive.
    Patch("exchange/stops", "self.raised |= 1", "self.raised = 1", STOPS),
    Patch("neg_risk/conversion", "[count] += amount", "[count] = amount", REENTRANCY),
    Patch("neg_risk/conversion", f"{LOCK}convert", f"{OPEN}convert", REENTRANCY),
    Patch("neg_risk/complete_sets", f"{LOCK}redeem", f"{OPEN}redeem", REENTRANCY),
    Patch("OptimisticOracle", f"{LOCK}disputePrice", f"{OPEN}disputePrice", REQUESTS),
    Patch("optimistic/requests", "+= request.bond - half", "+= half", REQUESTS),
    Patch("NegRiskOperator", "or is_resolved or", "or", OPERATOR),
    # Stops.
    Patch("exchange/stops", "word & ~TIMESTAMP | (timestamp", "word | (timestamp", STOPS),
    Patch("exchange/stops", "not is_later or timestamp >", "timestamp >", STOPS),
    Patch("exchange/stops", "(block.timestamp + AHEAD_MAX_S)", "2**200 * (AHEAD_MAX_S)", STOPS),
    Patch("exchange/stops", "word if isAllowed else word | NO_OWNER", "word | NO_OWNER", STOPS),
    Patch(
        "exchange/stops",
        "_raise(msg.sender, word)\n    log Nonce",
        "_raise(msg.sender, 1)\n    log Nonce",
        STOPS,
    ),
    Patch(
        "exchange/validity",
        "not is_v1 and timestamp < stops._timestamp(stop)",
        "not is_v1 and timestamp <= stops._timestamp(stop)",
        STOPS,
    ),
    Patch("exchange/validity", "stop & stops.NO_OWNER != 0", "False", STOPS),
    Patch(
        "exchange/validity",
        "if nonce != stop & stops.NONCE",
        "if nonce < stop & stops.NONCE",
        STOPS,
    ),
    # Validity and status.
    Patch("exchange/validity", "order.taker != msg.sender", "False", VALIDITY),
    Patch(
        "exchange/validity",
        "expiration < block.timestamp:\n        raw",
        "expiration <= block.timestamp:\n        raw",
        VALIDITY,
    ),
    Patch("exchange/validity", "if fee_rate_bps > fees", "if fee_rate_bps > 1 + fees", VALIDITY),
    Patch("exchange/validity", "chain.id != profiles.CHAIN_ID", "False", AUDIT),
    Patch("exchange/validity", "len(signature) != 0 or not", "not", PREAPPROVAL),
    Patch("exchange/status", "if slot & DONE != 0:", "if False:", STATUS),
    Patch(
        "exchange/status", "unsafe_sub(making, 1) >= left", "unsafe_sub(making, 1) > left", STATUS
    ),
    Patch("exchange/status", "= left << 1", "= (left << 1) + 2", STATUS),
    Patch("exchange/matching", "if slot == 0 or", "if", AUDIT),
    Patch("exchange/matching", "or order.signatureType == validity.signatures.ERC1271", "", PACKED),
    Patch(
        "exchange/orders",
        "unsafe_sub(collateral, 1) >= tokens",
        "unsafe_sub(collateral, 1) > tokens",
        ORDERS,
    ),
    # Signatures.
    Patch("evm/ecdsa", "s > S_MAX or", "", SIGNATURES),
    Patch("exchange/validity", "recovered == empty(address) or", "", AUDIT),
    Patch("exchange/packed", "recovered == empty(address) or", "", AUDIT),
    Patch(
        "exchange/signatures",
        "wallet = self._safe_address(signer)",
        "wallet = maker",
        SIGNATURES,
    ),
    Patch("exchange/signatures", "len(answer) != 32 or", "", SIGNATURES),
    Patch("exchange/signatures", "gas=ERC1271_GAS_MAX,", "gas=msg.gas,", SIGNATURES),
    Patch("exchange/preapproval", "if order.maker != msg.sender", "if False", PREAPPROVAL),
    Patch(
        "exchange/preapproval", "if self.approver[orderHash] != msg.sender", "if False", PREAPPROVAL
    ),
    Patch("exchange/preapproval", "or profiles._is_v1(order.profile)", "", PREAPPROVAL),
    # Matching.
    Patch(
        "exchange/crossing",
        "< unsafe_mul(takes, maker_takes)",
        "<= unsafe_mul(takes, maker_takes)",
        CROSSING,
    ),
    Patch("exchange/matching", "unsafe_sub(maker.makerAmount, 1)", "0", INVARIANTS),
    Patch("exchange/matching", "maker.maker != moving or", "", JOINED),
    Patch("exchange/matching", " or is_swap == (maker.isBuy == taker.isBuy)", "", JOINED),
    Patch(
        "exchange/matching",
        "gives = unsafe_add(gives, maker.making)",
        "gives = maker.making",
        JOINED,
    ),
    Patch(
        "exchange/matching",
        "gets = unsafe_add(gets, unsafe_sub(taking, maker.fee))",
        "gets = unsafe_sub(taking, maker.fee)",
        JOINED,
    ),
    Patch("exchange/matching", "gives = unsafe_sub(gives, withheld)", "pass", JOINED),
    Patch("exchange/matching", "maker.maker != empty(address) or (", "(", PACKED),
    Patch("exchange/crossing", "if paid > taker_fill", "if False", MATCHING),
    Patch(
        "exchange/crossing",
        "unsafe_mul(received, taker.makerAmount) < unsafe",
        "unsafe_mul(received, taker.makerAmount) <= unsafe",
        MATCHING,
    ),
    Patch("exchange/crossing", "received < unsafe_div", "received + 1 < unsafe_div", MATCHING),
    Patch(
        "exchange/matching",
        "if maker.tokenId != (buys if maker.isBuy else sells)",
        "if False",
        MATCHING,
    ),
    Patch(
        "exchange/matching",
        "swap_fees = unsafe_add(swap_fees, maker.fee)",
        "swap_fees = maker.fee",
        FEES,
    ),
    Patch(
        "exchange/matching",
        "withheld: uint256 = min(maker.making, fee_due)",
        "withheld: uint256 = fee_due",
        FEES,
    ),
    Patch(
        "exchange/settling",
        "unsafe_sub(sets.received, sets.given), sets.received",
        "sets.received, sets.received",
        SETTLING,
    ),
    Patch(
        "exchange/settling",
        "taker.tokenId, unsafe_sub(received, fee)",
        "taker.tokenId, received",
        FEES,
    ),
    Patch(
        "exchange/settling",
        "self, taker.maker, unsafe_sub(received, fee)",
        "self, taker.maker, received",
        FEES,
    ),
    Patch("exchange/fees", "fee > unsafe_div(order", "fee > 1 + unsafe_div(order", FEES),
    Patch("exchange/fees", "fee > unsafe_div(unsafe", "fee > 1 + unsafe_div(unsafe", FEES),
    Patch("exchange/fees", "min(received, unsafe_sub(given, received))", "received", FEES),
    Patch("exchange/fees", "whole = unsafe_mul(given, BPS)", "whole = BPS", FEES),
    Patch("exchange/fees", "unsafe_mul(limit, ", "unsafe_mul(FEE_RATE_BPS_MAX, ", FEES),
    Patch("exchange/fees", "word &= ~parameters.LIMITS", "word = 0", FEES),
    Patch("exchange/fees", "parameters.word & ~parameters.RECEIVER |", "", FEES),
    Patch("exchange/pausing", "parameters.word &= ~parameters.PAUSED", "parameters.word = 0", FEES),
    Patch(
        "exchange/pausing", "parameters.word |= parameters", "parameters.word = parameters", FEES
    ),
    Patch("exchange/fees", "if rateBps <= rate:", "if True:", FEES),
    Patch("exchange/fees", "block.timestamp < starts_at", "block.timestamp + 1 < starts_at", FEES),
    Patch("exchange/fees", "3 * 24 * 3600", "2 * 24 * 3600", FEES),
    Patch("exchange/fees", "or receiver == self", "", FEES),
    Patch(
        "exchange/matching",
        "gets = unsafe_add(gets, unsafe_sub(taking, maker.fee))",
        "gets = unsafe_add(gets, taking)",
        FEES,
    ),
    Patch("exchange/sweeping", f"{LOCK}sweep", f"{OPEN}sweep", FEE_RECEIVERS),
    # Packed matches.
    Patch("exchange/matching", "records_end != 0 and at != records_end", "False", PACKED),
    Patch("exchange/matching", "if taker.end >= end", "if False", PACKED),
    Patch(
        "exchange/packed", "orders._word(orders.ARGUMENTS_AT) != RECORDS_OFFSET", "False", PACKED
    ),
    Patch("exchange/packed", "elif slot == 0:", "elif False:", PACKED),
    Patch(
        "exchange/packed",
        "nonce = orders._word(order.end)",
        "nonce = 0",
        STOPS,
    ),
    Patch("exchange/matching", "taker, [], end, raised", "taker, [], end, 0", STOPS),
    Patch("exchange/matching", "token_id, raised)", "token_id, 0)", STOPS),
    Patch("exchange/packed", "order.feeRateBps = record.head & LAST", "pass", PACKED),
    Patch(
        "exchange/packed",
        "signer,\n                taker",
        "order.maker,\n                taker",
        PACKED,
    ),
    Patch("exchange/matching", "makerFeeAmounts[i], raised)", "makerFeeAmounts[i], 0)", STOPS),
    Patch("exchange/matching", "takerFeeAmount, raised)", "takerFeeAmount, 0)", STOPS),
    Patch("exchange/packed", "28 if flags & V_28 != 0 else 27", "27", PACKED),
    Patch("exchange/packed", "order.tokenId = sells", "order.tokenId = buys", PACKED),
    Patch("exchange/packed", "length > orders.SIGNATURE_BYTES_MAX", "False", PACKED),
    # Deliveries.
    Patch("exchange/custody", "if msg.gas < GAS_BEFORE_DELIVERY", "if False", DELIVERIES),
    Patch("exchange/custody", "gas=DELIVERY_GAS,", "gas=msg.gas,", DELIVERIES),
    Patch("exchange/custody", "[asset] += amount", "[asset] = amount", DELIVERIES),
    Patch("exchange/custody", "[tokenId] = 0", "[tokenId] = amount", DELIVERIES),
    Patch("exchange/custody", "or receiver == self", "", DELIVERIES),
    Patch("exchange/custody", "if not each.is_contract", "if False", CUSTODY),
    # Cancelling, roles, registry, custody, sweeping.
    Patch(
        "exchange/cancelling",
        "if not signatures._is_owner(msg.sender, order)",
        "if not signatures._is_owner(order.maker, order)",
        CANCELLING,
    ),
    Patch("exchange/cancelling", "if count > orders.ORDERS_MAX", "if False", V1_CANCELLING),
    Patch(
        "exchange/orders",
        "slice(msg.data, at + FIRST_BYTES, KIND_BYTES)",
        "slice(msg.data, at, KIND_BYTES)",
        V1_CANCELLING,
    ),
    Patch("exchange/roles", "self.isOperator[operator] = False", "pass", ROLES),
    Patch(
        "exchange/token_registry",
        "or tokenB != self._token_id(conditionId, conditions.SECOND_OUTCOME)",
        "",
        REGISTRY,
    ),
    Patch("exchange/token_registry", "self._complement(token) != complement", "False", ABI),
    Patch(
        "exchange/receiver", "operator != self and operator != custody.SPLITTER", "False", RECEIVER
    ),
    Patch("exchange/stops", f"{LOCK}incrementNonce", f"{OPEN}incrementNonce", RECEIVER),
    Patch(
        "exchange/sweeping",
        "receiver: address = fees._receiver(parameters.word)",
        "receiver: address = msg.sender if fees._receiver(parameters.word) != self else self",
        SWEEPING,
    ),
    Patch("neg_risk/sweeping", f"{LOCK}sweep", f"{OPEN}sweep", REENTRANCY),
    Patch("access/ownership", "self.pendingAdmin = empty(address)", "pass", OWNERSHIP),
    # Events.
    Patch("neg_risk/conversion", "if not markets._is_sealed(word)", "if False", CONVERSION),
    Patch(
        "neg_risk/conversion",
        "(len(given) - 1) * (amount - fee)",
        "len(given) * (amount - fee)",
        CONVERSION,
    ),
    Patch("neg_risk/conversion", "received, amount - fee)", "received, amount)", CONVERSION),
    Patch("neg_risk/conversion", "self.converted[marketId][questionCount] = 0", "pass", CONVERSION),
    Patch(
        "neg_risk/markets", "self.answered[market_id] |= 1", "self.answered[market_id] = 1", MARKETS
    ),
    Patch("neg_risk/markets", "index == QUESTIONS_MAX", "False", MARKETS),
    Patch("NegRiskOperator", "payouts[0] + payouts[1] != 1", "False", OPERATOR),
    Patch(
        "NegRiskOperator",
        "block.timestamp < self.flaggedAt[questionId] + DELAY_PERIOD",
        "False",
        OPERATOR,
    ),
    Patch("NegRiskOperator", "and block.timestamp < lapses_at", "", OPERATOR),
    Patch("NegRiskOperator", "block.timestamp < reported_at + HOLD_PERIOD", "True", OPERATOR),
    Patch("tokens/erc20", "self.totalSupply -= amount", "pass", WRAPPED),
    # Resolution.
    Patch(
        "optimistic/requests",
        "if block.timestamp < self.requests[key].expiresAt",
        "if block.timestamp <= self.requests[key].expiresAt",
        OPTIMISTIC,
    ),
    Patch("optimistic/requests", "self.owed[msg.sender] = 0", "pass", OPTIMISTIC),
    Patch("optimistic/requests", "self.requests[key].isFallback = True", "pass", OPTIMISTIC),
    Patch(
        "optimistic/requests",
        "state == REQUESTED and block.timestamp >= released_at",
        "block.timestamp >= released_at",
        OPTIMISTIC,
    ),
    # Calls in the middle of another one, by the random scenarios' wallets alone.
    Patch("exchange/custody", f"{LOCK}claimTokens", f"{OPEN}claimTokens", SCENARIOS),
    Patch("exchange/stops", f"{LOCK}setOwner", f"{OPEN}setOwner", SCENARIOS),
    Patch("exchange/stops", f"{LOCK}cancelBefore", f"{OPEN}cancelBefore", SCENARIOS),
    Patch("exchange/preapproval", f"{LOCK}invalidate", f"{OPEN}invalidate", SCENARIOS),
    Patch("exchange/matching", f"{LOCK}matchOrders", f"{OPEN}matchOrders", SCENARIOS),
    Patch("Exchange", f"{LOCK}__default__", f"{OPEN}__default__", SCENARIOS),
    Patch("NegRiskAdapter", f"{LOCK}__default__", f"{OPEN}__default__", SCENARIOS),
    Patch("neg_risk/complete_sets", f"{LOCK}split", f"{OPEN}split", SCENARIOS),
    Patch("neg_risk/complete_sets", f"{LOCK}merge", f"{OPEN}merge", SCENARIOS),
    Patch("neg_risk/conversion", f"{LOCK}release", f"{OPEN}release", SCENARIOS),
    # Roles, flags and ways out, by the random scenarios alone.
    Patch("exchange/roles", "self.isRegistrar[registrar] = False", "pass", SCENARIOS),
    Patch("access/ownership", "    self.admin = msg.sender\n", "    pass\n", SCENARIOS),
    Patch("NegRiskOperator", "self.flaggedAt[questionId] = 0", "pass", SCENARIOS),
    Patch(
        "DirectResolutionAdapter",
        "if block.timestamp < answers_at - SAFETY_S + period_s",
        "if False",
        LIVES,
    ),
    Patch(
        "DirectResolutionAdapter",
        "questions.questions[questionID].manualResolutionTimestamp = 0",
        "pass",
        LIVES,
    ),
    # Who is paid, by the model of the random disputes alone.
    Patch(
        "optimistic/requests",
        "and not self.requests[request.successor].isFallback",
        "",
        DISPUTES,
    ),
    Patch(
        "optimistic/requests",
        "owed[request.creator] += request.reward",
        "owed[request.creator] += 0",
        DISPUTES,
    ),
    Patch("OptimisticOracle", "if msg.sender != appointments.arbiter", "if False", DISPUTES),
    Patch(
        "optimistic/holding",
        "if block.timestamp < questions.questions[question_id].manualResolutionTimestamp",
        "if False",
        ADAPTER,
    ),
    Patch("optimistic/holding", "and block.timestamp < answers_at + ANSWER_S", "", ADAPTER),
    Patch("OptimisticResolutionAdapter", "or seconds < defaultLiveness or", "or", ADAPTER),
    Patch("OptimisticResolutionAdapter", "if msg.sender != oracle", "if False", ADAPTER),
    Patch(
        "DirectResolutionAdapter",
        "if block.timestamp < self._ends_at(questionID)",
        "if False",
        WAY_OUT,
    ),
    Patch(
        "DirectResolutionAdapter",
        "if block.timestamp >= self._ends_at(questionID) + UNFLAG_S",
        "if False",
        WAY_OUT,
    ),
    Patch("optimistic/bulletin", "len(self.updates[key]) == UPDATES_MAX", "False", BULLETIN),
    Patch(
        "optimistic/bulletin", "keccak256(abi_encode(question_id, owner))", "question_id", BULLETIN
    ),
    Patch("BatchSettler", "failed |= 1 << i", "failed = 1 << i", BATCHES),
)
