"""The lines with which clients in TypeScript use a running sandbox; Node.js runs them as they are."""

import json

from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sandbox.ready import Ready


def key_lines(ready: Ready, ready_file: str) -> str:
    """Return the lines that read the key of the first trader."""
    roles = [account.role for account in ready.accounts]
    return (
        'import { readFileSync } from "node:fs";\n'
        f'const {{ accounts }} = JSON.parse(readFileSync({json.dumps(ready_file)}, "utf8"));\n'
        f"const key = accounts[{roles.index(AccountRole.TRADER)}].privateKey; // the first trader's\n"
    )


def clob_lines(ready: Ready, ready_file: str, proxy_wallet: str = "") -> str:
    """Return the lines of the client of version 1, which trades for a proxy wallet if there is one."""
    funder = f", 1, {json.dumps(proxy_wallet)}" if proxy_wallet else ""
    start = f"new ClobClient({json.dumps(ready.clob)}, {ready.chain_id}, signer"
    return (
        'import { Wallet } from "@ethersproject/wallet";\n'
        'import { ClobClient } from "@polymarket/clob-client";\n'
        f"{key_lines(ready, ready_file)}\n"
        "const signer = new Wallet(key);\n"
        f"const creds = await {start}).createOrDeriveApiKey();\n"
        f"const client = {start}, creds{funder});"
    )


def clob_v2_lines(ready: Ready, ready_file: str, wallet: str = "") -> str:
    """Return the lines of the client of version 2, which trades for a deposit wallet if there is one."""
    funder = f", signatureType: 3, funderAddress: {json.dumps(wallet)}" if wallet else ""
    return (
        'import { Wallet } from "@ethersproject/wallet";\n'
        'import { ClobClient } from "@polymarket/clob-client-v2";\n'
        f"{key_lines(ready, ready_file)}\n"
        f"const sandbox = {{ host: {json.dumps(ready.clob)}, chain: {ready.chain_id},"
        f" signer: new Wallet(key){funder} }};\n"
        "const creds = await new ClobClient(sandbox).createOrDeriveApiKey();\n"
        "const client = new ClobClient({ ...sandbox, creds });"
    )


def relayer_lines(ready: Ready, ready_file: str) -> str:
    """Return the lines of the client of relayers."""
    made = _new_relayer(ready, ready_file, ready.chain_id, "undefined")
    return f"{made}\nawait relayer.deployDepositWallet();"


def proxy_relayer_lines(ready: Ready, ready_file: str, chain_id: int, approval: InnerCall) -> str:
    """Return the lines of the same client for a proxy wallet, which it knows on this chain alone."""
    made = _new_relayer(ready, ready_file, chain_id, "RelayerTxType.PROXY")
    to, calldata = json.dumps(checksum_address(approval.to)), approval.calldata.hex()
    return (
        f"{made}\n// The first call makes the wallet. This one lets the exchange take its collateral.\n"
        f'const approval = {{ to: {to}, data: "0x{calldata}", value: "0" }};\n'
        'await relayer.execute([approval], "approval");'
    )


def _new_relayer(ready: Ready, ready_file: str, chain_id: int, kind: str) -> str:
    names = "RelayClient, RelayerTxType" if kind != "undefined" else "RelayClient"
    return (
        f'import {{ {names} }} from "@polymarket/builder-relayer-client";\n'
        'import { BuilderConfig } from "@polymarket/builder-signing-sdk";\n'
        'import { createWalletClient, defineChain, http } from "viem";\n'
        'import { privateKeyToAccount } from "viem/accounts";\n'
        f"{key_lines(ready, ready_file)}\n"
        "const chain = defineChain({\n"
        f'  id: {chain_id}, name: "sandbox",'
        ' nativeCurrency: { name: "coin", symbol: "COIN", decimals: 18 },\n'
        f"  rpcUrls: {{ default: {{ http: [{json.dumps(ready.rpc)}] }} }},\n"
        "});\n"
        "const account = privateKeyToAccount(key);\n"
        "const owner = createWalletClient({ account, chain, transport: http() });\n"
        "// The credentials are those that a client of the trading API above has created.\n"
        "const builder = new BuilderConfig({ localBuilderCreds: creds });\n"
        f"const relayer = new RelayClient({json.dumps(ready.relayer)}, {chain_id}, owner, builder,"
        f" {kind}, {{ chain }});"
    )
