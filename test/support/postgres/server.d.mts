/** A real PostgreSQL server, on a free port of the loopback interface. */
export type PostgresServer = {
  /** While it runs. */
  readonly pid: number
  /** `postgres://…` of a new, empty database. */
  database(): Promise<string>
  /** Ends it at once, as a machine that fails does. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Of the user `postgres`. */
export const PASSWORD: string

/**
 * Starts a server in an empty cluster; it needs no root, and as root it is `nobody`, since PostgreSQL refuses root. It
 * ends with this process, however that ends, and leaves nothing behind.
 */
export function startPostgres(): Promise<PostgresServer>
