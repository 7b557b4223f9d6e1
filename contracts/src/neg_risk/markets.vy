# pragma version 0.4.3
"""
@title Neg-risk markets
@license Apache-2.0
@notice A market is up to 100 questions of which at most one is answered Yes. A question's id is its
        market's with the question's index in the last byte. The oracle that prepared the market
        alone adds questions and answers them.
"""

from interfaces import IConditionalTokens
from neg_risk import holdings
from tokens import conditions

uses: holdings

event MarketPrepared:
    marketId: indexed(bytes32)
    oracle: indexed(address)
    feeBips: uint256
    data: Bytes[METADATA_BYTES_MAX]


event QuestionPrepared:
    marketId: indexed(bytes32)
    questionId: indexed(bytes32)
    index: uint256
    data: Bytes[METADATA_BYTES_MAX]


event MarketSealed:
    marketId: indexed(bytes32)
    questionCount: uint256


event OutcomeReported:
    marketId: indexed(bytes32)
    questionId: indexed(bytes32)
    outcome: bool


METADATA_BYTES_MAX: constant(uint256) = 8192
# A conversion moves and splits positions of every question. With more questions it would not fit the
# 16,777,216 gas that a transaction may use (EIP-7825).
QUESTIONS_MAX: constant(uint256) = 100
FEE_DENOMINATOR: public(constant(uint256)) = 10_000

INDEX_MASK: constant(uint256) = 255

# Where the parts of a market's word begin: the number of questions, whether one is Yes, which one,
# the fee, whether its questions are complete, and the oracle in the last twenty bytes.
COUNT_AT: constant(uint256) = 248
DETERMINED_AT: constant(uint256) = 240
RESULT_AT: constant(uint256) = 232
FEE_AT: constant(uint256) = 216
SEALED_AT: constant(uint256) = 208

# One word for each market; zero for one that was not prepared.
words: HashMap[bytes32, uint256]
# The positions of a condition, Yes and No; zero for conditions of others.
yes_of: HashMap[bytes32, uint256]
no_of: HashMap[bytes32, uint256]
# A bit for each question that was answered.
answered: HashMap[bytes32, uint256]


@external
def prepareMarket(feeBips: uint256, metadata: Bytes[METADATA_BYTES_MAX]) -> bytes32:
    """
    @notice Open a market whose oracle is the caller; return its id.
    @param feeBips What conversions cost, in hundredths of a per cent
    @param metadata A description, which the market's id follows from
    @return The market's id
    """
    if feeBips > FEE_DENOMINATOR:
        raw_revert(method_id("FeeBipsOutOfBounds()"))
    market_id: bytes32 = self._market_of(keccak256(abi_encode(msg.sender, feeBips, metadata)))
    if self.words[market_id] != 0:
        raw_revert(method_id("MarketAlreadyPrepared()"))
    self.words[market_id] = (feeBips << FEE_AT) | convert(msg.sender, uint256)
    log MarketPrepared(marketId=market_id, oracle=msg.sender, feeBips=feeBips, data=metadata)
    return market_id


@external
def prepareQuestion(marketId: bytes32, metadata: Bytes[METADATA_BYTES_MAX]) -> bytes32:
    """
    @notice Add a question to a market, for its oracle; return its id. A condition that somebody
            else has prepared for us in the meantime is the same condition.
    @param marketId The market
    @param metadata A description of the question
    @return The question's id
    """
    word: uint256 = self._word(marketId)
    self._check_oracle(word)
    if self._is_sealed(word):
        raw_revert(method_id("MarketAlreadySealed()"))
    index: uint256 = word >> COUNT_AT
    if index == QUESTIONS_MAX:
        raw_revert(method_id("TooManyQuestions()"))
    self.words[marketId] = word + (1 << COUNT_AT)
    question_id: bytes32 = self._question_id(marketId, index)
    condition_id: bytes32 = self._condition_id(question_id)
    ctf: address = holdings.CONDITIONAL_TOKENS
    if staticcall IConditionalTokens(ctf).getOutcomeSlotCount(condition_id) == 0:
        extcall IConditionalTokens(ctf).prepareCondition(self, question_id, conditions.OUTCOMES)
    self.yes_of[condition_id] = self._token_id(condition_id, conditions.FIRST_OUTCOME)
    self.no_of[condition_id] = self._token_id(condition_id, conditions.SECOND_OUTCOME)
    log QuestionPrepared(marketId=marketId, questionId=question_id, index=index, data=metadata)
    return question_id


@external
def sealMarket(marketId: bytes32):
    """
    @notice Say that a market has all its questions, once and for good, for its oracle. A conversion
            counts on it: a question added later could be Yes, and pay what was converted to others.
    @param marketId The market
    """
    word: uint256 = self._word(marketId)
    self._check_oracle(word)
    if self._is_sealed(word):
        raw_revert(method_id("MarketAlreadySealed()"))
    self.words[marketId] = word | (1 << SEALED_AT)
    log MarketSealed(marketId=marketId, questionCount=word >> COUNT_AT)


@external
@nonreentrant
def reportOutcome(questionId: bytes32, outcome: bool):
    """
    @notice Answer a question once and for good, for its market's oracle. Yes is said once a market.
    @param questionId The question
    @param outcome True for Yes
    """
    market_id: bytes32 = self._market_of(questionId)
    index: uint256 = self._index_of(questionId)
    word: uint256 = self._word(market_id)
    self._check_oracle(word)
    if index >= word >> COUNT_AT:
        raw_revert(method_id("InvalidQuestion()"))
    if self.answered[market_id] & (1 << index) != 0:
        raw_revert(method_id("QuestionAlreadyAnswered()"))
    self.answered[market_id] |= 1 << index
    payouts: DynArray[uint256, 2] = [0, 1]
    if outcome:
        if self._is_determined(word):
            raw_revert(method_id("MarketAlreadyDetermined()"))
        self.words[market_id] = word | (1 << DETERMINED_AT) | (index << RESULT_AT)
        payouts = [1, 0]
    extcall IConditionalTokens(holdings.CONDITIONAL_TOKENS).reportPayouts(questionId, payouts)
    log OutcomeReported(marketId=market_id, questionId=questionId, outcome=outcome)


@external
@view
def getMarketData(marketId: bytes32) -> bytes32:
    """
    @notice All of a market in one word, from the left: the number of questions, whether one is Yes,
            which one, two bytes of fee, whether it is sealed; the oracle in the last twenty bytes.
    @param marketId The market
    @return Its count of questions, whether it is decided, its result, fee and oracle, in a word
    """
    return convert(self.words[marketId], bytes32)


@external
@view
def getQuestionCount(marketId: bytes32) -> uint256:
    """
    @notice How many questions a market has.
    @param marketId The market
    @return The number
    """
    return self.words[marketId] >> COUNT_AT


@external
@view
def getDetermined(marketId: bytes32) -> bool:
    """
    @notice Whether one of a market's questions is Yes.
    @param marketId The market
    @return True when a question is Yes
    """
    return self._is_determined(self.words[marketId])


@external
@view
def getResult(marketId: bytes32) -> uint256:
    """
    @notice Which question of a determined market is Yes.
    @param marketId The market
    @return The index of the question that is Yes
    """
    return self._result(self.words[marketId])


@external
@view
def getFeeBips(marketId: bytes32) -> uint256:
    """
    @notice What conversions in a market cost, in hundredths of a per cent.
    @param marketId The market
    @return Basis points
    """
    return self._fee_bips(self.words[marketId])


@external
@view
def isSealed(marketId: bytes32) -> bool:
    """
    @notice Whether a market has all its questions, so that its positions can be converted.
    @param marketId The market
    @return True when no question can be added
    """
    return self._is_sealed(self.words[marketId])


@external
@view
def getOracle(marketId: bytes32) -> address:
    """
    @notice Who adds and answers a market's questions.
    @param marketId The market
    @return Its address
    """
    return self._oracle(self.words[marketId])


@external
@view
def getConditionId(questionId: bytes32) -> bytes32:
    """
    @notice The condition of a question.
    @param questionId The question
    @return The condition's id
    """
    return self._condition_id(questionId)


@external
@view
def getPositionId(questionId: bytes32, outcome: bool) -> uint256:
    """
    @notice The position that pays when a question is answered this way.
    @param questionId The question
    @param outcome True for Yes
    @return The token id
    """
    condition_id: bytes32 = self._condition_id(questionId)
    self._check_condition(condition_id)
    return self.yes_of[condition_id] if outcome else self.no_of[condition_id]


@external
@view
def isAnswered(questionId: bytes32) -> bool:
    """
    @notice Whether a question was answered.
    @param questionId The question
    @return True once an outcome was reported
    """
    return self.answered[self._market_of(questionId)] & (1 << self._index_of(questionId)) != 0


@internal
@view
def _word(market_id: bytes32) -> uint256:
    word: uint256 = self.words[market_id]
    if word == 0:
        raw_revert(method_id("MarketNotPrepared()"))
    return word


@internal
@view
def _check_oracle(word: uint256):
    if msg.sender != self._oracle(word):
        raw_revert(method_id("OnlyOracle()"))


@internal
@view
def _check_condition(condition_id: bytes32):
    if self.yes_of[condition_id] == 0:
        raw_revert(method_id("InvalidCondition()"))


@internal
@pure
def _market_of(id: bytes32) -> bytes32:
    return convert(convert(id, uint256) & ~INDEX_MASK, bytes32)


@internal
@pure
def _index_of(question_id: bytes32) -> uint256:
    return convert(question_id, uint256) & INDEX_MASK


@internal
@pure
def _question_id(market_id: bytes32, index: uint256) -> bytes32:
    return convert(convert(market_id, uint256) | index, bytes32)


@internal
@view
def _condition_id(question_id: bytes32) -> bytes32:
    return conditions._condition_id(self, question_id)


@internal
@pure
def _is_determined(word: uint256) -> bool:
    return (word >> DETERMINED_AT) & 255 != 0


@internal
@pure
def _result(word: uint256) -> uint256:
    return (word >> RESULT_AT) & 255


@internal
@pure
def _fee_bips(word: uint256) -> uint256:
    return (word >> FEE_AT) & 65535


@internal
@pure
def _is_sealed(word: uint256) -> bool:
    return (word >> SEALED_AT) & 255 != 0


@internal
@pure
def _oracle(word: uint256) -> address:
    return convert(word & convert(max_value(uint160), uint256), address)


@internal
@view
def _token_id(condition_id: bytes32, index_set: uint256) -> uint256:
    return conditions._token_id(
        holdings.CONDITIONAL_TOKENS, holdings.WRAPPED, condition_id, index_set
    )
