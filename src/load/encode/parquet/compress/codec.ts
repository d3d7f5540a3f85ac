import zlib from 'node:zlib'
import type { CompressionCodec } from 'hyparquet'
import { type Compression, ExportError } from '../../../../core/index.ts'
import { snappyCompress } from './snappy.ts'

export type Codec = {
  readonly name: CompressionCodec
  /** Good until the next call, or for as long as the page. */
  readonly compress: (page: Uint8Array) => Uint8Array
}

/**
 * The levels are low ones: the next step up makes files a few per cent smaller and takes twice as long.
 * @throws ExportError `config` for zstd where Node.js does not have it
 */
export function codec(compression: Compression): Codec {
  switch (compression) {
    case 'none':
      return { name: 'UNCOMPRESSED', compress: (page) => page }
    case 'snappy':
      return { name: 'SNAPPY', compress: snappyCompress }
    case 'gzip':
      return { name: 'GZIP', compress: (page) => zlib.gzipSync(page, { level: 3 }) }
    case 'zstd':
      return { name: 'ZSTD', compress: zstd() }
  }
}

// Node.js has zstd from 22.15 on, and the types of the oldest version that we run on do not know it.
type ZstdCompress = (input: Uint8Array, options: { params: Record<number, number> }) => Uint8Array
const ZSTD_COMPRESSION_LEVEL = 100

function zstd(): (page: Uint8Array) => Uint8Array {
  const compress: unknown = Reflect.get(zlib, 'zstdCompressSync')
  if (!isZstdCompress(compress)) {
    throw new ExportError(
      'config',
      `Node.js ${process.versions.node} cannot compress with zstd`,
      'load.compression',
      'Use Node.js 22.15 or later, or choose snappy or gzip.',
    )
  }
  return (page) => compress(page, { params: { [ZSTD_COMPRESSION_LEVEL]: 3 } })
}

function isZstdCompress(value: unknown): value is ZstdCompress {
  return typeof value === 'function'
}
