"""Alembic's entry point: runs the migrations on the connection it is handed."""

from alembic import context

from cofire.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
    version_table_schema="cofire" if connection.dialect.name == "postgresql" else None,
)
with context.begin_transaction():
    context.run_migrations()
