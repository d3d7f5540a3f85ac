/** Requests to Azure Blob storage. */
export { azureDriver } from './azure-driver.ts'
