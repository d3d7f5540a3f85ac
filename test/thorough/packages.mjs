import { createRequire } from 'node:module'

/** A package of this folder, which `npm test` goes without. @param name or a file of it */
export const thoroughPackage = (name) => import(name)

/** The path of a file of a package of this folder. */
export const thoroughPath = createRequire(import.meta.url).resolve
