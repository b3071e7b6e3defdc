  ! What MPI-2 has replaced, with values of attributes that are integers.
  interface
    subroutine MPI_Attr_get(comm, keyval, attribute_val, flag, ierror)
      integer, intent(in) :: comm, keyval
      integer, intent(out) :: attribute_val, ierror
      logical, intent(out) :: flag
    end subroutine
    subroutine MPI_Attr_put(comm, keyval, attribute_val, ierror)
      integer, intent(in) :: comm, keyval, attribute_val
      integer, intent(out) :: ierror
    end subroutine
    subroutine MPI_Keyval_create(copy_fn, delete_fn, keyval, extra_state, ierror)
      external :: copy_fn, delete_fn
      integer, intent(in) :: extra_state
      integer, intent(out) :: keyval, ierror
    end subroutine
    subroutine MPI_NULL_COPY_FN(comm, keyval, extra_state, value_in, value_out, flag, ierror)
      integer :: comm, keyval, extra_state, value_in, value_out, ierror
      logical :: flag
    end subroutine
    subroutine MPI_DUP_FN(comm, keyval, extra_state, value_in, value_out, flag, ierror)
      integer :: comm, keyval, extra_state, value_in, value_out, ierror
      logical :: flag
    end subroutine
    subroutine MPI_NULL_DELETE_FN(comm, keyval, value, extra_state, ierror)
      integer :: comm, keyval, extra_state, value, ierror
    end subroutine
  end interface
  external :: MPI_COMM_DUP_FN, MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN
  external :: MPI_TYPE_DUP_FN, MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN
  external :: MPI_WIN_DUP_FN, MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, MPI_CONVERSION_FN_NULL
