"""Who may act for which wallet: signers, nonces, contract wallets."""
