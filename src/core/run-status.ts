export const RUN_STATUSES = ['complete', 'failed', 'budget', 'interrupted'] as const

export type RunStatus = (typeof RUN_STATUSES)[number]
