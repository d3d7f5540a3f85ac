# The command in an image of its own: built from this repository, run as a user without rights.
#   docker build --tag spillway .
#   docker run --rm --volume "$PWD:/data" --env SPILLWAY_BASE_URL --env SPILLWAY_TOKEN spillway run acme.yaml
FROM node:22-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev

FROM node:22-slim
ENV NODE_ENV=production
COPY --from=build /src/package.json /opt/spillway/package.json
COPY --from=build /src/node_modules /opt/spillway/node_modules
COPY --from=build /src/dist /opt/spillway/dist
# Pipeline files and, where it is no bucket, the data set: a volume, which has to belong to this user.
RUN chmod +x /opt/spillway/dist/cli/main.js \
  && ln -s /opt/spillway/dist/cli/main.js /usr/local/bin/spillway \
  && install --directory --owner=node --group=node /data
WORKDIR /data
USER node
ENTRYPOINT ["spillway"]
CMD ["--help"]
