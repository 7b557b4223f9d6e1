// What the session's wallet can trade, kept fresh.

import { type UseQueryResult, useQuery } from "@tanstack/react-query";

import { useConfig } from "../lib/context";
import { type Funds, fetchFunds } from "./orders";
import { useSession } from "./session";

const FRESH_MS = 10_000;

/** Return the collateral of the wallet, or its tokens of one outcome. */
export function useFunds(token?: string): UseQueryResult<Funds> {
  const config = useConfig();
  const { session } = useSession();
  return useQuery({
    queryKey: ["own", "funds", session?.maker, token ?? ""],
    queryFn: () => {
      if (session === null) throw new Error("no wallet is connected");
      return fetchFunds(config, session, token);
    },
    enabled: session !== null,
    refetchInterval: FRESH_MS,
  });
}
