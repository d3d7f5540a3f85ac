import type * as z from 'zod'
import type { DataSetLocation } from '../core/index.ts'
import { type Condition, key, onlyIf } from './schema/key.ts'
import { flag, parsed, section, text } from './schema/leaves.ts'
import { URL_ALONE } from './values/addresses.ts'

/** The sections of the file that say where a data set lies. */
export type StoreKind = Exclude<DataSetLocation['kind'], 'disk'>

/** What a pipeline file and the environment say of an object storage. */
type StoreWords = {
  readonly scheme: string
  /** Of the address, with the bucket and what follows it as groups. */
  readonly pattern: RegExp
  /** An example of an address, and what its bucket has to be. */
  readonly address: string
  readonly rule: string
  /** Its section of `load`, as it is declared; it may be left out. */
  readonly section: z.ZodType
  readonly location: (section: never, bucket: string, prefix: string) => DataSetLocation
  /** The beginning of all variables that its client reads by itself. */
  readonly environment: string
  /** Those that hold secrets, which no message may repeat. */
  readonly secrets: readonly string[]
  /** Parts of these that are secrets, too, percent-encoded perhaps; null: none. */
  readonly secretPart: RegExp | null
}

function onlyIn(scheme: string): Condition {
  return onlyIf<string | undefined>(
    'load.path',
    (path) => path?.startsWith(`${scheme}:`) === true,
    () => `goes with a load.path that begins with ${scheme}://`,
  )
}

const s3Keys = key(
  section({
    endpoint: key(
      parsed(...URL_ALONE).optional(),
      'Address of an S3-compatible store. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, ~/.aws, or AWS itself.',
    ),
    region: key(
      text(/^[a-z0-9-]{1,64}$/, 'a region such as eu-central-1').optional(),
      'Region of the bucket. Default: AWS_REGION or ~/.aws, or us-east-1 where there is an endpoint.',
    ),
    allow_http: key(
      flag().prefault(false),
      'Allow plain http to another machine: rows are then sent unencrypted.',
    ),
    path_style: key(
      flag().optional(),
      "Name the bucket in the path instead of the host: most stores other than AWS's need it. Default: true where an endpoint is given.",
    ),
  }).optional(),
  'Object storage; goes with a path that begins with s3://. Default: as AWS tools are set up.',
  onlyIn('s3'),
)

const s3 = {
  scheme: 's3',
  pattern: /^s3:\/\/(?![^/]*\.\.)([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/,
  address: 's3://bucket/prefix',
  rule: 'a bucket of 3 to 63 of a-z, 0-9, - and .',
  section: s3Keys,
  location(given: z.output<typeof s3Keys>, bucket: string, prefix: string) {
    const { endpoint = null, region = null, path_style = null, allow_http = false } = given ?? {}
    return { kind: 's3', bucket, prefix, endpoint, region, pathStyle: path_style, allowHttp: allow_http }
  },
  environment: 'AWS_',
  secrets: ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
  secretPart: null,
} as const satisfies StoreWords

const azureKeys = key(
  section({
    endpoint: key(
      parsed(...URL_ALONE).optional(),
      'Address of Azure Blob storage, with the account where it is in the path: for emulators and other clouds. Default: https://<account>.blob.core.windows.net.',
    ),
  }).optional(),
  'Azure Blob storage; goes with a path that begins with az://. Default: by AZURE_STORAGE_* variables.',
  onlyIn('az'),
)

const azure = {
  scheme: 'az',
  pattern: /^az:\/\/([a-z0-9](?:-?[a-z0-9]){2,62})(?:\/(.*))?$/,
  address: 'az://container/prefix',
  rule: 'a container of 3 to 63 of a-z, 0-9 and single -',
  section: azureKeys,
  location(given: z.output<typeof azureKeys>, container: string, prefix: string) {
    return { kind: 'azure', container, prefix, endpoint: given?.endpoint ?? null }
  },
  environment: 'AZURE_',
  secrets: [
    'AZURE_STORAGE_KEY',
    'AZURE_STORAGE_SAS_TOKEN',
    'AZURE_STORAGE_CONNECTION_STRING',
    'AZURE_CLIENT_SECRET',
  ],
  // Addresses that Azure is asked for hold the signature of a SAS token alone; connection strings hold keys.
  secretPart: /\b(?:AccountKey|sig)=([^;&\s]+)/g,
} as const satisfies StoreWords

export const STORES = { s3, azure } as const satisfies Record<StoreKind, StoreWords>

export const STORE_KINDS = Object.keys(STORES) as readonly StoreKind[]

export const STORE_SECTIONS = { s3: s3.section, azure: azure.section } satisfies Record<StoreKind, unknown>

/** The addresses of stores, for messages: `s3://bucket/prefix or az://container/prefix`. */
export const ADDRESSES = Object.values(STORES)
  .map(({ address }) => address)
  .join(' or ')

/** What leads to a store, in errors: its address, or a variable that its client reads. */
export const IN_STORE = new RegExp(
  `^(?:${Object.values(STORES)
    .map(({ scheme, environment }) => `${scheme}://\\S*|${environment}\\w+`)
    .join('|')})$`,
)

/** The store that a path names by its scheme; undefined: it is a folder. */
export function storeOf(path: string): StoreKind | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(path) ?? []
  return STORE_KINDS.find((kind) => STORES[kind].scheme === scheme?.toLowerCase())
}
