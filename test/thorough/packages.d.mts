// biome-ignore lint/suspicious/noExplicitAny: its types are where it is installed
export declare function thoroughPackage(name: string): Promise<any>
export declare function thoroughPath(name: string): string
