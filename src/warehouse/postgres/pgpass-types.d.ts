/** The part of pgpass 1 that is used here; the package brings no declarations. */
declare module 'pgpass' {
  type Connection = {
    readonly host: string
    readonly port: number
    readonly database: string | undefined
    readonly user: string | undefined
  }

  // CommonJS, whose names Node.js does not see: they come in the default export only.
  const pgpass: {
    (connection: Connection, done: (password: string | undefined) => void): void
    /** Where warnings go; standard error unless this was called. */
    warnTo(stream: NodeJS.WritableStream): void
  }
  export default pgpass
}
