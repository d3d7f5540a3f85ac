/** What is told to workers when there may be something to do. */
export const WAKES = 'spillway_wakes'
