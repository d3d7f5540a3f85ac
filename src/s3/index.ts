/** Requests to S3-compatible object storage. */
export { s3Driver } from './s3-driver.ts'
