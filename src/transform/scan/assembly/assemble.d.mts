export const WRITTEN: string
export function assemble(): Promise<Buffer>
