export { azureDriver } from './azure-driver.ts'
