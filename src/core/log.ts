export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, string | number | boolean | null>>

/** Writes a log line. Lines hold no secrets. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void
