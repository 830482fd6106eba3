"""Files in: one route a kind of file. Its options are the fields of the import page's form, checked by that form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from ninja import Router
from ninja.errors import ValidationError
from ninja.responses import Status

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.api.jobs import JobOut, accepted
from judging.api.receiving import received, said_with
from judging.import_forms import FORMS, ImportForm
from judging.services.import_uploads import receive_upload, start_import

router = Router(tags=["Imports"])

DESCRIPTION = """\
{purpose}

Send the file as the body, or as the field `file` of a multipart form; options go into the address, or into the other
fields of the form. The file may be plain, gzip, zstd or a zip with one file in it. Answers 202 with a job, whose
`result` is the report; with `check` it only reports. It is all or nothing: a file with a fault writes nothing, the job
is `failed`, and its report names each kind of fault with line numbers. The same file again changes nothing.
"""


class ReceivingForm(forms.Form):
    """What the API asks besides the options of a kind."""

    check = forms.BooleanField(required=False, help_text="Report only; write nothing.")
    file_name = forms.CharField(
        required=False,
        max_length=255,
        label="Name of the file",
        help_text="A label for the report, where the file is sent as the body.",
    )


def _import(request: ApiRequest, response: HttpResponse, kind: str) -> Status:
    said = said_with(request)
    options, receiving = _understood(said, FORMS[kind](said, evalset=request.auth.evalset, with_file=False))
    file = received(request)
    if receiving["file_name"]:
        file.name = receiving["file_name"]
    elif file.name == "body":
        file.name = kind
    with file:
        upload = receive_upload(evalset=request.auth.evalset, file=file, by=request.auth.user)
    job = start_import(
        evalset=request.auth.evalset,
        upload=upload,
        kind=kind,
        options=options,
        check=receiving["check"],
        by=request.auth.user,
    )
    return accepted(job, response)


def _understood(said: QueryDict, form: ImportForm) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the kind, and what the API asks besides; ValidationError where one is wrong or not known."""
    receiving = ReceivingForm(said)
    errors = [
        {"loc": ("query", name), "msg": str(error)}
        for asked in (form, receiving)
        for name, messages in asked.errors.items()
        for error in messages
    ]
    known = {**form.fields, **receiving.fields}
    errors += [
        {"loc": ("query", name), "msg": "Write true or false."}
        for name, field in known.items()
        if isinstance(field, forms.BooleanField) and said.get(name, "true") not in ("true", "false")
    ]
    errors += [
        {"loc": ("query", name), "msg": f"There is no such option. Known: {', '.join(sorted(known))}."}
        for name in said
        if name not in known
    ]
    if errors:
        raise ValidationError(errors)
    return form.options(), receiving.cleaned_data


def _described(field: forms.Field, name: str) -> dict[str, Any]:
    """A field of a form as a parameter of an OpenAPI document."""
    schema: dict[str, Any] = {"type": "string"}
    if isinstance(field, forms.BooleanField):
        schema = {"type": "boolean", "default": False}
    elif isinstance(field, forms.IntegerField):
        schema = {"type": "integer", "minimum": field.min_value, "maximum": field.max_value or 2**31 - 1}
    elif isinstance(field, forms.DateField):
        schema = {"anyOf": [{"type": "string", "format": "date"}, {"const": ""}]}
    elif isinstance(field, forms.ChoiceField):
        choices: Any = field.choices
        values = [value for value, _ in choices if value]
        schema = {"type": "string", "enum": values} if values else schema
    elif isinstance(field, forms.CharField):
        schema = {"type": "string", "pattern": r"^[^\x00]*$"}
        if field.max_length:
            schema["maxLength"] = field.max_length
    said = ". ".join(part for part in (str(field.label or ""), str(field.help_text)) if part)
    return {"in": "query", "name": name, "required": field.required, "description": said, "schema": schema}


def _parameters(form: type[ImportForm]) -> list[dict[str, Any]]:
    fields = {**form.base_fields, **ReceivingForm.base_fields}
    return [_described(field, name) for name, field in fields.items() if name != "file"]


def _body(parameters: list[dict[str, Any]]) -> dict[str, Any]:
    raw = {"schema": {"type": "string", "format": "binary"}}
    options = {item["name"]: {**item["schema"], "description": item["description"]} for item in parameters}
    file = {"type": "string", "format": "binary"}
    form = {"type": "object", "required": ["file"], "properties": {"file": file, **options}}
    return {
        "required": True,
        "content": {"application/octet-stream": raw, "multipart/form-data": {"schema": form}},
    }


def _add_route(kind: str, form: type[ImportForm]) -> None:
    parameters = _parameters(form)

    @router.post(
        f"/{kind}",
        auth=auth.lead,
        response={202: JobOut},
        url_name=f"import-{kind}",
        operation_id=f"import_{kind}",
        summary=f"Import: {form.title.lower()}",
        description=DESCRIPTION.format(purpose=form.purpose),
        openapi_extra={"parameters": parameters, "requestBody": _body(parameters)},
    )
    def import_file(request: ApiRequest, response: HttpResponse) -> Status:
        return _import(request, response, kind)


for _kind, _form in FORMS.items():
    _add_route(_kind, _form)
