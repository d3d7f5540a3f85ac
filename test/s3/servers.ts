export type S3Server = { readonly endpoint: string; close(): Promise<void> }

export const REGION = 'eu-central-1'
/** Those of the double; the other server accepts any. */
export const CREDENTIALS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'made/up+for=tests' }
