// What is shown instead of a page that failed: of a page that this version does not have any more, the way to the new one.

import { Component, type ReactNode } from "react";

import { t } from "../strings";

interface Props {
  /** Another value gives the page another try: the path. */
  of: string;
  children: ReactNode;
}

interface State {
  error: unknown;
  of: string;
}

/** A part of the app that is no file of the server any more: the tab is older than the installation. */
function isStale(error: unknown): boolean {
  return error instanceof TypeError && /dynamically imported module|module script failed|preload/i.test(error.message);
}

export class Boundary extends Component<Props, State> {
  override state: State = { error: null, of: this.props.of };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: State): Partial<State> | null {
    return props.of === state.of ? null : { of: props.of, error: null };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="page narrow">
        <div className="callout bad" role="alert">
          <strong>{isStale(error) ? t.problem.stale : t.problem.broken}</strong>
          <span>{isStale(error) ? t.problem.staleText : t.problem.brokenText}</span>
          <span><button type="button" className="button slim" onClick={() => window.location.reload()}>{t.problem.reload}</button></span>
        </div>
      </div>
    );
  }
}
