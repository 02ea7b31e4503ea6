/** A line of standard error that may be written over, columns wide at the most. */
export interface StatusLine {
  readonly columns: number;
  write(text: string): void;
}

/** The edges of a command, so that it can run without a process of its own. */
export interface Terminal {
  /** Writes to standard output, and to standard error. A line end is added. */
  print(line: string): void;
  complain(line: string): void;
  /** Writes to standard output as it stands. */
  write(text: string): void;
  /** Whether a person watches: a line may then be written over, columns wide at the most. */
  readonly live: { readonly columns: number } | undefined;
  /** Where a person watches standard error. */
  readonly status?: StatusLine | undefined;
  /** Settles when the user, or the system, asks the program to end. */
  interrupted(): Promise<void>;
  /** Calls `work` each time that the system asks for the settings to be read anew. Returns what ends that. */
  onReload(work: () => void): () => void;
}

export interface Command {
  /** What `sluice <command> --help` prints. */
  readonly help: string;
  /**
   * Returns the exit code.
   * @throws SluiceError `invalid_option` for wrong flags, which ends the program with exit code 2.
   */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}
