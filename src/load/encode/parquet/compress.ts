import zlib from 'node:zlib'
import type { CompressionCodec } from 'hyparquet'
import { snappyCompressor } from 'hysnappy'
import type { Compression } from '../../../core/index.ts'

export type Codec = {
  readonly name: CompressionCodec
  readonly compress: (page: Uint8Array) => Uint8Array
}

/** The levels are low: the next higher level makes files a few per cent smaller and takes twice as long. */
export function codec(compression: Compression): Codec {
  switch (compression) {
    case 'none':
      return { name: 'UNCOMPRESSED', compress: (page) => page }
    case 'snappy':
      return { name: 'SNAPPY', compress: snappyCompressor() }
    case 'gzip':
      return { name: 'GZIP', compress: (page) => zlib.gzipSync(page, { level: 3 }) }
    case 'zstd':
      return {
        name: 'ZSTD',
        compress: (page) => zstdCompressSync!(page, { params: { [ZSTD_COMPRESSION_LEVEL]: 3 } }),
      }
  }
}

type ZstdCompress = (input: Uint8Array, options: { params: Record<number, number> }) => Uint8Array
const ZSTD_COMPRESSION_LEVEL = 100

// The types of the oldest supported Node.js lack it; the configuration refuses zstd there.
const { zstdCompressSync } = zlib as { zstdCompressSync?: ZstdCompress }
