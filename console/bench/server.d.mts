/** The part of the bench's server that tests use. */
export class BenchServer {
  constructor(repo: string, now?: string);
  address: string;
  start(): Promise<void>;
  stop(): void;
}
