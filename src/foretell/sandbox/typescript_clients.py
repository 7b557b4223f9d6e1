"""The lines with which clients in TypeScript use a running sandbox; Node.js runs them as they are."""

import json

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.sandbox.ready import Ready


def key_lines(ready: Ready, ready_file: str) -> str:
    """Return the lines that read the key of the first trader."""
    roles = [account.role for account in ready.accounts]
    return (
        'import { readFileSync } from "node:fs";\n'
        f'const {{ accounts }} = JSON.parse(readFileSync({json.dumps(ready_file)}, "utf8"));\n'
        f"const key = accounts[{roles.index(AccountRole.TRADER)}].privateKey; // the first trader's\n"
    )


def clob_lines(ready: Ready, ready_file: str) -> str:
    """Return the lines of the client of version 1."""
    start = f"new ClobClient({json.dumps(ready.clob)}, {ready.chain_id}, signer"
    return (
        'import { Wallet } from "@ethersproject/wallet";\n'
        'import { ClobClient } from "@polymarket/clob-client";\n'
        f"{key_lines(ready, ready_file)}\n"
        "const signer = new Wallet(key);\n"
        f"const creds = await {start}).createOrDeriveApiKey();\n"
        f"const client = {start}, creds);"
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
    return (
        'import { RelayClient } from "@polymarket/builder-relayer-client";\n'
        'import { BuilderConfig } from "@polymarket/builder-signing-sdk";\n'
        'import { createWalletClient, defineChain, http } from "viem";\n'
        'import { privateKeyToAccount } from "viem/accounts";\n'
        f"{key_lines(ready, ready_file)}\n"
        "const chain = defineChain({\n"
        f'  id: {ready.chain_id}, name: "sandbox",'
        ' nativeCurrency: { name: "coin", symbol: "COIN", decimals: 18 },\n'
        f"  rpcUrls: {{ default: {{ http: [{json.dumps(ready.rpc)}] }} }},\n"
        "});\n"
        "const account = privateKeyToAccount(key);\n"
        "const owner = createWalletClient({ account, chain, transport: http() });\n"
        "// The credentials are those that a client of the trading API above has created.\n"
        "const builder = new BuilderConfig({ localBuilderCreds: creds });\n"
        f"const relayer = new RelayClient({json.dumps(ready.relayer)}, {ready.chain_id}, owner, builder,"
        " undefined, { chain });\n"
        "await relayer.deployDepositWallet();"
    )
