/** The elements of a tensor in row-major order. Those of bool are 0 or 1, those of float16 are bits. */
export type Elements = Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

export interface Tensor {
  dims: number[];
  data: Elements;
}

/** What a model takes or returns. A size that it leaves open is its symbol, or "". */
export interface Value {
  name: string;
  type: string;
  dims: (number | string)[];
}

export interface Result {
  status: number;
  stdout: string;
  stderr: string;
  /** The files of the command, those that were given and those that it wrote. */
  files: Record<string, Uint8Array>;
}

/** A model that is open. It runs in a worker, one run after the other. */
export interface Session {
  readonly inputs: Value[];
  readonly outputs: Value[];
  /** Rejects with what is wrong with which input. */
  run(inputs: Record<string, Tensor>): Promise<Record<string, Tensor & { type: string }>>;
  /** Ends the worker. A run that is not done rejects. */
  close(): Promise<void>;
}

export interface Options {
  /** Selects passes, as the command line does: "fast_run +int8". */
  query?: string;
}

/**
 * Makes a model smaller and faster, compares it with what it was on random inputs, and returns it with a report. Rejects if
 * they differ, or if there is no such model. flags are those of `nnopt opt`, such as "--shape=x=1x3x224x224".
 */
export function optimize(model: Uint8Array, options?: Options & { flags?: string[] }): Promise<{ model: Uint8Array; report: any }>;

/** Opens a model to run it. */
export function open(model: Uint8Array, options?: Options): Promise<Session>;

/** Runs the command nnopt with files in memory. */
export function command(args: string[], files?: Record<string, Uint8Array>): Promise<Result>;
