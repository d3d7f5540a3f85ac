export { s3Driver } from './s3-driver.ts'
