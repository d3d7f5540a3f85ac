/** The part of parquetjs-lite 0.8 that is used here. The package has no type declarations. */
declare module 'parquetjs-lite' {
  export type Field = {
    type?: 'UTF8' | 'INT64' | 'TIMESTAMP_MILLIS' | 'BOOLEAN' | 'LIST'
    optional?: boolean
    repeated?: boolean
    compression?: 'UNCOMPRESSED' | 'SNAPPY' | 'GZIP'
    statistics?: false
    fields?: Record<string, Field>
  }

  type Schema = { readonly fields: unknown }
  type EnvelopeWriter = { readonly schema: Schema }
  type Writer = {
    appendRow(row: Readonly<Record<string, unknown>>): Promise<void>
    close(): Promise<void>
  }

  // A CommonJS module whose named exports Node.js does not detect: they are properties of the default export.
  const parquetjs: {
    ParquetSchema: new (fields: Record<string, Field>) => Schema
    ParquetEnvelopeWriter: new (
      schema: Schema,
      write: (bytes: Buffer) => void,
      close: () => void,
      fileOffset: number,
      options: { useDataPageV2: boolean; pageIndex: boolean },
    ) => EnvelopeWriter
    ParquetWriter: new (schema: Schema, envelope: EnvelopeWriter, options: { rowGroupSize: number }) => Writer
  }
  export default parquetjs
}
