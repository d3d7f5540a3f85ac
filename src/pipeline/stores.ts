import type { DataSetLocation } from '../core/index.ts'
import type { PipelineFile } from './schema/file-schema.ts'

/** The sections of the file that say where a data set lies. */
export type StoreKind = Exclude<DataSetLocation['kind'], 'disk'>
/** What a pipeline file and the environment say of an object storage. */
type StoreWords = {
  readonly scheme: string
  /** Of the address, with the bucket and what follows it as groups. */
  readonly pattern: RegExp
  readonly expected: string
  readonly location: (load: PipelineFile['load'], bucket: string, prefix: string) => DataSetLocation
  /** Variables that its client reads by itself, for machines without a role. */
  readonly variables: readonly string[]
  /** Those that hold secrets, which no message may repeat. */
  readonly secrets: readonly string[]
  /** Parts of these that are secrets, too, percent-encoded perhaps; null: none. */
  readonly secretPart: RegExp | null
}

/** Every object storage, by its section of the file. */
export const STORES: Readonly<Record<StoreKind, StoreWords>> = {
  s3: {
    scheme: 's3',
    pattern: /^s3:\/\/(?![^/]*\.\.)([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/,
    expected: 's3://bucket/prefix with a bucket of 3 to 63 of a-z, 0-9, - and .',
    location({ s3 = { allow_http: false } }, bucket, prefix) {
      const { endpoint = null, region = null, path_style: pathStyle = null, allow_http: allowHttp } = s3
      return { kind: 's3', bucket, prefix, endpoint, region, pathStyle, allowHttp }
    },
    variables: ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_REGION'],
    secrets: ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
    secretPart: null,
  },
  azure: {
    scheme: 'az',
    pattern: /^az:\/\/([a-z0-9](?:-?[a-z0-9]){2,62})(?:\/(.*))?$/,
    expected: 'az://container/prefix with a container of 3 to 63 of a-z, 0-9 and single -',
    location({ azure }, container, prefix) {
      return { kind: 'azure', container, prefix, endpoint: azure?.endpoint ?? null }
    },
    variables: ['AZURE_STORAGE_ACCOUNT', 'AZURE_STORAGE_KEY'],
    secrets: [
      ...['AZURE_STORAGE_KEY', 'AZURE_STORAGE_SAS_TOKEN', 'AZURE_STORAGE_CONNECTION_STRING'],
      'AZURE_CLIENT_SECRET',
    ],
    // Addresses that Azure is asked for hold the signature of a SAS token alone; connection strings hold keys.
    secretPart: /\b(?:AccountKey|sig)=([^;&\s]+)/g,
  },
}

export const STORE_KINDS = Object.keys(STORES) as readonly StoreKind[]

/** The store that a path names by its scheme; undefined: it is a folder. */
export function storeOf(path: string): StoreKind | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(path) ?? []
  return STORE_KINDS.find((kind) => STORES[kind].scheme === scheme?.toLowerCase())
}
