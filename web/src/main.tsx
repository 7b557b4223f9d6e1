// Loads the configuration, then shows the app.

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app";
import { loadConfig } from "./lib/config";
import { ConfigContext } from "./lib/context";
import { Refusal } from "./lib/http";
import "./lib/theme";
import "./styles/tokens.css";
import "./styles/app.css";
import "./styles/markets.css";
import "./styles/trading.css";
import { Problem } from "./ui/parts";
import { takeToken } from "./wallet/sandbox";

const RETRIES_MAX = 3;

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 3_000,
      retry: (count, error) => error instanceof Refusal && error.isTemporary && count < RETRIES_MAX,
      retryDelay: (count, error) => 1000 * ((error instanceof Refusal ? error.retryAfterS : null) ?? 2 ** count),
    },
  },
});

async function start(): Promise<void> {
  takeToken();
  const element = document.getElementById("root");
  if (element === null) return;
  const root = createRoot(element);
  try {
    const config = await loadConfig();
    root.render(
      <StrictMode>
        <ConfigContext.Provider value={config}>
          <QueryClientProvider client={client}><App /></QueryClientProvider>
        </ConfigContext.Provider>
      </StrictMode>,
    );
  } catch (error) {
    root.render(<main className="page narrow"><Problem error={error} onRetry={() => window.location.reload()} /></main>);
  }
}

void start();
