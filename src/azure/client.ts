import type { BlobServiceClient, ContainerClient, StoragePipelineOptions } from '@azure/storage-blob'
import { loadSdk, plainHttp, STORE_ATTEMPTS } from '../bucket/index.ts'
import { type DataSetLocation, ExportError, isLoopback } from '../core/index.ts'

export type AzureLocation = Extract<DataSetLocation, { kind: 'azure' }>

type Sdk = typeof import('@azure/storage-blob')

const OPTIONS: StoragePipelineOptions = {
  retryOptions: {
    maxTries: STORE_ATTEMPTS,
    tryTimeoutInMs: 180_000,
    retryDelayInMs: 250,
    maxRetryDelayInMs: 4000,
  },
}

const NO_CREDENTIALS =
  'Set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or log in (`az login`).'

/** Credentials come from the environment, else from `@azure/identity`. @throws ExportError `config` */
export async function openContainer(location: AzureLocation): Promise<ContainerClient> {
  keepLoopbackDirect(location.endpoint)
  const sdk = await loadSdk('@azure/storage-blob', () => import('@azure/storage-blob'))
  const service = await openService(sdk, location)
  if (isHttp(service.url) && !isLoopback(new URL(service.url).hostname, { subdomains: true })) {
    throw plainHttp('load.azure.endpoint', 'Use an https address.')
  }
  return service.getContainerClient(location.container)
}

async function openService(sdk: Sdk, { endpoint }: AzureLocation): Promise<BlobServiceClient> {
  const connection = variable('AZURE_STORAGE_CONNECTION_STRING')
  if (connection !== null) {
    try {
      return sdk.BlobServiceClient.fromConnectionString(connection, OPTIONS)
    } catch {
      // The SDK's error may hold a part of it.
      throw new ExportError({
        kind: 'config',
        what: 'AZURE_STORAGE_CONNECTION_STRING is no connection string',
        where: 'AZURE_STORAGE_CONNECTION_STRING',
        next: 'Copy it from the access keys of the storage account.',
      })
    }
  }
  const account = variable('AZURE_STORAGE_ACCOUNT')
  if (account === null && endpoint === null) throw incomplete('There is no storage account')
  const address = endpoint ?? `https://${account}.blob.core.windows.net`
  const [key, token] = [variable('AZURE_STORAGE_KEY'), variable('AZURE_STORAGE_SAS_TOKEN')]
  if (key !== null) {
    if (account === null)
      throw incomplete('AZURE_STORAGE_ACCOUNT is not set, but the key is that of an account')
    return new sdk.BlobServiceClient(address, new sdk.StorageSharedKeyCredential(account, key), OPTIONS)
  }
  if (token !== null)
    return new sdk.BlobServiceClient(`${address}?${token.replace(/^\?/, '')}`, undefined, OPTIONS)
  // No token of an identity goes over plain http, not even on this machine.
  if (isHttp(address))
    throw incomplete('The address is plain http, and there is neither a key nor a SAS token')
  const identity = await loadSdk('@azure/identity', () => import('@azure/identity'))
  return new sdk.BlobServiceClient(address, new identity.DefaultAzureCredential(), OPTIONS)
}

/** The SDK reads the variables of proxies by itself, and knows no exception for this machine: rows would leave it in clear. */
function keepLoopbackDirect(endpoint: string | null): void {
  const hosts = ['localhost', '127.0.0.1', '[::1]']
  if (endpoint !== null && URL.canParse(endpoint)) {
    const { hostname } = new URL(endpoint)
    if (isLoopback(hostname, { subdomains: true })) hosts.push(hostname)
  }
  const given = process.env.no_proxy || process.env.NO_PROXY || ''
  process.env.NO_PROXY = [
    ...new Set([...given.split(/[\s,]+/).filter((entry) => entry !== ''), ...hosts]),
  ].join(',')
}

function isHttp(address: string): boolean {
  return /^http:/i.test(address)
}

function incomplete(what: string): ExportError {
  return new ExportError({ kind: 'config', what, where: 'AZURE_STORAGE_ACCOUNT', next: NO_CREDENTIALS })
}

function variable(name: string): string | null {
  return process.env[name] || null
}
