import { createRequire } from 'node:module'

/** Spillway's own version. package.json lies one folder up from the sources and from the built files alike. */
export const version = (createRequire(import.meta.url)('../package.json') as { version: string }).version
