/** By whom a run is that asked no service. */
export const NOBODY = { organization: null, tenant: null, host: 'here' }
