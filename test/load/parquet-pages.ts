import { type ColumnMetaData, type FileMetaData, type PageHeader, parquetMetadata } from 'hyparquet'
import { parquetHeader } from 'hyparquet/src/column.js'

/** A page of a Parquet file: its header, and its bytes as they are stored. */
export type StoredPage = { readonly header: PageHeader; readonly offset: number; readonly bytes: Uint8Array }

export function metadataOf(file: Uint8Array): FileMetaData {
  return parquetMetadata(file, {
    geoparquet: false,
    parsers: { timestampFromMicroseconds: (value) => value },
  })
}

export function columnChunksOf(file: Uint8Array, name: string): ColumnMetaData[] {
  return metadataOf(file).row_groups.map(
    ({ columns }) => columns.find(({ meta_data }) => meta_data!.path_in_schema[0] === name)!.meta_data!,
  )
}

/** The pages of a column chunk, which must fill it to the last byte. */
export function pagesOf(file: Uint8Array, columnChunk: ColumnMetaData): StoredPage[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const start = Number(columnChunk.dictionary_page_offset ?? columnChunk.data_page_offset)
  const end = start + Number(columnChunk.total_compressed_size)
  const pages: StoredPage[] = []
  const reader = { view, offset: start }
  while (reader.offset < end) {
    const header = parquetHeader(reader)
    const { offset } = reader
    reader.offset += header.compressed_page_size
    pages.push({ header, offset, bytes: file.subarray(offset, reader.offset) })
  }
  if (reader.offset !== end) throw new Error(`the pages end at ${reader.offset} instead of ${end}`)
  return pages
}
