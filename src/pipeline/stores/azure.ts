import type * as z from 'zod'
import { key } from '../schema/key.ts'
import { parsed, section } from '../schema/leaves.ts'
import { URL_ALONE } from '../values/addresses.ts'
import { onlyIn, type StoreWords } from './store-words.ts'

const keys = key(
  section({
    endpoint: key(
      parsed(...URL_ALONE).optional(),
      'Address of Azure Blob storage, with the account where it is in the path: for emulators and other clouds. Default: https://<account>.blob.core.windows.net.',
    ),
  }).optional(),
  'Azure Blob storage; goes with a path that begins with az://. Default: by AZURE_STORAGE_* variables.',
  onlyIn('az'),
)

export const azure = {
  scheme: 'az',
  pattern: /^az:\/\/([a-z0-9](?:-?[a-z0-9]){2,62})(?:\/(.*))?$/,
  address: 'az://container/prefix',
  rule: 'a container of 3 to 63 of a-z, 0-9 and single -',
  section: keys,
  location(given: z.output<typeof keys>, container: string, prefix: string) {
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
