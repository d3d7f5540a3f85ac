/** A port of the loopback interface on which no server listens, and which no other process of the tests gets. */
export function freePort(): Promise<number>
