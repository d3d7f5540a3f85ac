# An image with the command, built from this repository. It runs as an unprivileged user.
#   docker build --tag spillway .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" \
#     --env SPILLWAY_BASE_URL --env SPILLWAY_TOKEN spillway run acme.yaml
# To pin the base image by digest: --build-arg NODE_IMAGE=node:22.23.3-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:22.23.3-bookworm-slim
FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="Spillway" \
  org.opencontainers.image.description="Bulk export of leaked-credential search results into Parquet or CSV: complete, once, masked, resumable." \
  org.opencontainers.image.version="0.2.0" \
  org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
COPY --from=build /src/package.json /src/LICENSE /opt/spillway/
# The licences of bundled packages are in dist/, those of the other packages in their folders.
COPY --from=build /src/node_modules /opt/spillway/node_modules
COPY --from=build /src/dist /opt/spillway/dist
# What `init` and `demo` begin with.
COPY --from=build /src/pipelines /opt/spillway/pipelines
# A volume for pipeline files and, unless they go to a bucket, data sets. It must belong to the user that runs it.
RUN chmod +x /opt/spillway/dist/cli/main.js \
  && ln -s /opt/spillway/dist/cli/main.js /usr/local/bin/spillway \
  && install --directory --owner=node --group=node /data
WORKDIR /data
USER node
ENTRYPOINT ["spillway"]
CMD ["--help"]
